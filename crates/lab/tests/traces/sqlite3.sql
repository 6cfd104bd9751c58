PRAGMA cache_size=-2000;
CREATE TABLE page(id INTEGER PRIMARY KEY, owner INTEGER, name TEXT, used INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000)
INSERT INTO page SELECT i, (i*7919)%997, 'page number '||((i*104729)%1000003), (i*31)%4096 FROM n;
CREATE INDEX page_owner ON page(owner);
CREATE INDEX page_name ON page(name);
SELECT owner, count(*), avg(used) FROM page GROUP BY owner ORDER BY 2 DESC LIMIT 3;
SELECT a.id, b.id FROM page a JOIN page b ON a.owner=b.owner AND a.used=b.used AND a.id<b.id LIMIT 5;
SELECT substr(name,1,14), count(*) FROM page GROUP BY 1 ORDER BY 2 DESC LIMIT 3;
UPDATE page SET used=used+1 WHERE owner<100;
SELECT count(*) FROM page WHERE name LIKE '%77%';
