"""What belongs to no stage.

Errors, files, settings, paths, devices, threads, compiled loops, reproducible exp and log, the
optimizer.
"""
