"""ST that repairs without stopping: a lost packet is put at its place, or is given another one by its source."""
