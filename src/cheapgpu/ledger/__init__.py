"""What is owed, on what evidence: attempts, holds, outcomes, closures and entries."""
