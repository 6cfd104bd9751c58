-- Orders in a table in memory, and a question about the latest fifth of them, asked again and again.
create table orders(id integer primary key, customer integer, item text);
insert into orders
    select value, value * 7919 % 5000,
           printf('%d pieces of article %d, to be sent to customer %d, paid',
                  value % 9, value * 31 % 9000, value * 7919 % 5000)
    from generate_series(1, 250000);
select sum(length(item)) from generate_series(1, 800), orders where id > 200000;
