"""Old addresses of modules that users name in their own files; they go with version 0.3."""
