"""Every sentence about data: the hypothesis, the test, the correction for number, the words."""
