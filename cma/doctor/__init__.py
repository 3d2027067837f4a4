"""The doctor: what is wrong with a store, where, and what to do. It looks, and mends nothing.

- Nothing is opened for writing: store, log and anchor are the same bytes before and after.
- All findings are collected; one damage does not hide the next.
- A finding's code is stable, like the reason codes of errors.
"""
