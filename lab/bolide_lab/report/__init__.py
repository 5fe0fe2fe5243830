"""Pages and tables made of the recorded results."""
