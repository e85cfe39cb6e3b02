"""Values that all packages share: units, inputs and outputs of a machine, configurations, errors.

Values only; nothing here does anything beyond checking itself.
"""
