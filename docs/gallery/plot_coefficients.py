"""
A coefficient for each category
===============================

text
"""
