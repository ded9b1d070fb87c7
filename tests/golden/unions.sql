-- Unions of filters and joins: branches share nodes with other queries, and unions with unions.
-- name: seen
SELECT auction AS id, 'bid' AS kind FROM bids WHERE price > 1000
UNION ALL SELECT length(page), 'click' FROM clicks WHERE page IN ('/', '/a');
-- name: seen_prices
SELECT 0 AS money, page AS label FROM clicks WHERE page IN ('/a', '/')
UNION ALL SELECT price, channel FROM bids WHERE NOT price <= 1000;
-- name: seen_and_more
SELECT auction AS id FROM bids WHERE price > 1000
UNION ALL SELECT length(page) FROM clicks WHERE page IN ('/', '/a')
UNION ALL SELECT x.auction FROM bids x JOIN bids y ON x.auction = y.auction
    AND y.price > x.price AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 20 SECONDS AND x.price > 1000;
-- name: channels
SELECT channel AS name FROM bids WHERE price > 1000
UNION SELECT page FROM clicks WHERE page IN ('/', '/a');
-- name: mixed
SELECT DISTINCT channel AS name, 1 AS n FROM bids WHERE price > 1000
UNION ALL SELECT page, 2.5 FROM clicks WHERE page IN ('/', '/a');
-- name: over_a_union
WITH events AS (
    SELECT auction AS id, ts AS at, 'bid' AS kind FROM bids WHERE price > 1000
    UNION ALL SELECT length(page), at, 'click' FROM clicks WHERE page IN ('/', '/a'))
SELECT e.id, e.kind, b.price FROM events e JOIN bids b ON b.bidder = e.id
WHERE b.ts BETWEEN e.at AND e.at + INTERVAL 1 SECOND;
