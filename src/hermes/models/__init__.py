"""Transports to model providers: one file per wire protocol, one vocabulary out."""
