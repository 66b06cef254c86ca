"""Reads files: pictures of any mode and size, and folders of classes."""
