"""Fencepost: notifications from PostgreSQL through scheduled AWS Lambda runs, neither lost nor doubled."""
