"""stitching"""
