"""What a confidence cannot tell: grouping loss and decision risk."""
