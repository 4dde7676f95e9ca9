"""What `sam build` made, invoked: handlers and layers as they would be deployed, and nothing of this tree."""
