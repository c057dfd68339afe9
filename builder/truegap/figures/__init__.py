"""What runs say, in words and in charts: for reports and for the pages of the leaderboard."""
