"""What the servers serve: files, WordPress, a shop."""
