"""What a person looks at: the model card, and the page of a run with its charts."""
