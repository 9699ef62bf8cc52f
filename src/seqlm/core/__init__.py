"""What every stage needs: errors, files, settings, the catalogue of paths, devices."""
