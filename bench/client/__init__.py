"""The client: a coordinator that knows the conversations, and worker processes that only move and stamp bytes."""
