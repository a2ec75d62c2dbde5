"""What a label budget can and cannot show."""
