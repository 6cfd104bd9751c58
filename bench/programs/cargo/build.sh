# Builds everything anew, eight crates at a time, and runs what comes out.
# Cargo and rustup look for what they have in the user's own folder.
HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
export HOME
rm -rf target
cargo build --quiet --offline --release --jobs 8 && exec target/release/app
