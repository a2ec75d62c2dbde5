"""Is an answer right? Grades, and how far a grader agrees with people."""
