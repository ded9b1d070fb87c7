-- How many different bidders each channel brings. Plain Spark streaming cannot count distinct.
SELECT channel, window.start AS start, COUNT(DISTINCT bidder) AS bidders
FROM bids
GROUP BY window(ts, '5 minutes'), channel
