"""Transforms: functions of functions, over plain arrays and pytrees."""
