#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# templates/notify: what they send, by a real curl to a server of this test.

bats_require_minimum_version 1.5.0
load ../await

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    templates="$HPCGRID_SOURCE/templates/notify"
    cat >server.py <<'END'
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open("got", "w") as f:
            json.dump({"path": self.path, "body": body, "title": self.headers["Title"], "priority": self.headers["Priority"],
                       "token": self.headers["Authorization"], "type": self.headers["Content-Type"]}, f)
        self.send_response(403 if self.path == "/no" else 200)
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open("port", "w") as f: print(server.server_port, file=f)
server.serve_forever()
END
    python3 server.py 3>&- &
    server=$!
    await grep -q . port
    address=http://127.0.0.1:$(cat port)
    export HPCGRID_SUBJECT='m/001: i="3"\x: failed' HPCGRID_EVENT=failure
    printf '%s\nok 1 · failed 2\n\nhpcgrid logs m\n' "$HPCGRID_SUBJECT" >text
}

teardown() {
    kill "$server"
    wait "$server" || true
    nothing_left
}

@test "ntfy gets the text, the subject as title, and a priority" {
    NTFY_SERVER=$address NTFY_TOKEN=secret "$templates/ntfy" topic <text
    jq -se --rawfile text text '.[0] | .path == "/topic" and .body == $text and .title == $ENV.HPCGRID_SUBJECT and .priority == "high" and .token == "Bearer secret"' got
    HPCGRID_EVENT=end NTFY_SERVER=$address "$templates/ntfy" topic <text
    jq -se '.[0] | .priority == "default" and .token == null' got
    run -22 env NTFY_SERVER="$address" "$templates/ntfy" no <text
    [[ "$output" == *403* ]]
    run -2 "$templates/ntfy"
}

@test "Slack gets one JSON object, whatever the text holds" {
    SLACK_WEBHOOK_URL=$address/hook "$templates/slack" <text
    jq -se --rawfile text text '.[0] | .path == "/hook" and .type == "application/json" and (.body | fromjson) == {text: $text}' got
    run -22 env SLACK_WEBHOOK_URL="$address/no" "$templates/slack" <text
    run -2 "$templates/slack" <text
    [[ "$output" == *"SLACK_WEBHOOK_URL is not set"* ]]
}

@test "mail gets the subject and the addresses" {
    mkdir bin
    printf '#!/bin/sh\nprintf "%%s|" "$@" >mailed; cat >>mailed\n' >bin/mail
    chmod +x bin/mail
    PATH=$PWD/bin:$PATH "$templates/mail" me@example.org you@example.org <text
    [ "$(head -1 mailed)" = "-s|$HPCGRID_SUBJECT|me@example.org|you@example.org|$HPCGRID_SUBJECT" ]
}
