"""The engines that translate token ids: torch for everything, ctranslate2 for speed."""
