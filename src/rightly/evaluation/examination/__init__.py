"""What may be wrong with stored predictions: findings, each with evidence and a remedy."""
