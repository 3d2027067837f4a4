"""Orion: typed cells and links, scopes, lifetimes, the audited store and lexical recall."""
