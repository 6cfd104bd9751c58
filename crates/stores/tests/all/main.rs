//! Stores from outside: against a real server of Redis, and servers of HTTP in the test.

mod http;
mod mounted;
mod proxy;
mod redis;
mod s3;
mod server;
mod swap;
mod tls;
