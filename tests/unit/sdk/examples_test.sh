#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples_test BIN_DIR: a game joins a game server with the tokens of a test-mode agent; then all that must be refused.
set -euo pipefail
bin=$(cd "$1" && pwd)
dir=$(mktemp -d)
agent=
cleanup() {
  set +e
  if [ -n "$agent" ]; then kill "$agent"; wait "$agent"; fi
  rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir"
mkdir keys
printf '%064x\n' 7 > title.key
"$bin/assay-fake-attester" jwks --keys keys --out jwks.json
"$bin/assay-fake-attester" serve --keys keys --socket "$dir/agent.sock" &
agent=$!
for _ in $(seq 100); do [ -S agent.sock ] && break; sleep 0.1; done

# round NAME EXPECTED_CODE EXPECTED_EXIT server arguments -- game arguments
round() {
  local name=$1 code=$2 exit_code=$3; shift 3
  local server_arguments=()
  while [ "$1" != -- ]; do server_arguments+=("$1"); shift; done
  shift
  rm -f port
  "$bin/assay-example-server" --jwks jwks.json --issuer https://test.assay.invalid --audience title.example --title-key title.key \
    --port-file port "${server_arguments[@]}" >server.json 2>server.err &
  local server=$!
  for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done
  local game_exit=0 server_exit=0
  "$bin/assay-example-game" --port "$(cat port)" --agent-socket "$dir/agent.sock" "$@" >game.json || game_exit=$?
  wait "$server" || server_exit=$?
  if [ "$server_exit" != "$exit_code" ] || [ "$game_exit" != "$exit_code" ] || ! grep -q "\"code\":\"$code\"" server.json || ! grep -q "\"code\":\"$code\"" game.json; then
    echo "FAILED: $name: wanted $code and exit $exit_code; server $server_exit, game $game_exit"
    cat server.json server.err game.json
    exit 1
  fi
  echo "$name: $code"
}

round "a player with tokens of its own" ok 0 --allow-test --save-nonce nonce -- --key a.pem --save-token token
grep -q '"host_token":"ok"' server.json || { echo "FAILED: no host token was checked"; exit 1; }
round "test tokens where they are not allowed" test_token 1 -- --key a.pem
round "another player's token for the same nonce" session_key 1 --allow-test --nonce-from nonce -- --key b.pem --present-token token
round "a token for an earlier nonce" nonce 1 --allow-test -- --key a.pem --present-token token
round "a token bound to another key than the channel's" session_key 1 --allow-test -- --key b.pem --session-key-hash-from a.pem
round "another match" match 1 --allow-test --match other --nonce-from nonce -- --key a.pem --present-token token
# The same checks for a token that the command line made for that very nonce and channel.
round "the player's channel once more" nonce 1 --allow-test -- --key a.pem --present-token token
channel=$(sed 's/.*"session_key_hash":"\([0-9a-f]*\)".*/\1/' server.json)
"$bin/assay-fake-attester" result-token --keys keys --nonce "$(cut -c1-64 nonce)" --session-key-hash "$channel" \
  --audience title.example --match match-1 --tier warning --out made
round "a tier that is not enough" tier 1 --allow-test --nonce-from nonce -- --key a.pem --present-token made
round "the same where it is enough" ok 0 --allow-test --warning --nonce-from nonce -- --key a.pem --present-token made
"$bin/assay-fake-attester" host-token --keys keys --nonce "$(cut -c1-64 nonce)" --session-key-hash "$channel" --out host
[ "$(head -c 3 host)" = AHT ] || { echo "FAILED: host-token wrote no host token"; exit 1; }
for program in assay-fake-attester assay-example-server assay-example-game; do
  "$bin/$program" --help | grep -q -- --key || { echo "FAILED: $program --help says nothing of --key"; exit 1; }
done
