"""What all charts share: theme, data, captions, display and export."""
