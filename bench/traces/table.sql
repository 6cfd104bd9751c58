PRAGMA cache_size = 400;
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
INSERT INTO orders SELECT i, i * 7919 % 1009, i * 31 % 977, 'note ' || (i * 104729 % 100003) FROM n;
CREATE INDEX by_customer ON orders (customer, amount);
SELECT customer, sum(amount) AS s FROM orders GROUP BY customer ORDER BY s DESC LIMIT 3;
SELECT count(*) FROM orders a JOIN orders b ON a.id = b.customer WHERE b.amount > 900;
UPDATE orders SET note = note || '!' WHERE customer % 10 = 3;
SELECT max(note), count(DISTINCT note) FROM orders;
DELETE FROM orders WHERE amount < 100;
SELECT count(*) FROM orders;
