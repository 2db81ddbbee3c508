"""A small grammar of English and German that writes sentence pairs."""
