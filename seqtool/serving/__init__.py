"""An HTTP server for models: LibreTranslate's API, a web page, and batches made of what arrives together."""
