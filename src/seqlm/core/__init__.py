"""What belongs to no stage: errors, files, settings, paths, devices, threads, compiled loops, the optimizer."""
