"""How a group begins anew from its logs, when so many members failed that no view could follow the last one."""
