-- Asks Portcullis whether a request may be forwarded. See haproxy.cfg.

local decisions = "http://127.0.0.1:9000/"
local milliseconds = 10000
-- The most field lines of a question, one fewer than tune.http.maxhdr. With more of them than that,
-- HAProxy's client sends none at all.
local lines_max = 100

-- Of the client's connection, or said anew below.
local own = {
    ["connection"] = true, ["keep-alive"] = true, ["proxy-connection"] = true, ["te"] = true,
    ["transfer-encoding"] = true, ["content-length"] = true,
    ["expect"] = true, ["host"] = true, ["x-original-method"] = true,
    ["x-original-uri"] = true, ["x-original-host"] = true,
    ["x-original-content-length"] = true,
}

-- Fields of an answer that are for the client: haproxy.cfg writes them into the response.
local notes = {
    ["app-attest-challenge"] = "txn.portcullis_challenge",
    ["app-attest-next"] = "txn.portcullis_next",
}

-- The whole content; nil where the buffer has a part of it.
local function whole_content(txn)
    local ended = txn.f:internal_htx_has_eom()
    if ended ~= 1 and ended ~= true then return nil end
    return txn.f:req_body() or ""
end

local function refuse(txn, status, fields, document)
    local reply = txn:reply()
    reply:set_status(status)
    for name, values in pairs(fields or {}) do
        -- HAProxy frames the document itself.
        if not own[name] then
            for _, value in pairs(values) do reply:add_header(name, value) end
        end
    end
    if document then reply:set_body(document) end
    txn:done(reply)
end

core.register_action("portcullis_decide", { "http-req" }, function(txn)
    local asked = {}
    local host
    for name, values in pairs(txn.http:req_get_headers()) do
        name = name:lower()
        local lines = {}
        for _, value in pairs(values) do table.insert(lines, value) end
        -- Of an HTTP/2 client it is the authority, which HAProxy has written as Host.
        if name == "host" then host = lines end
        if not own[name] then asked[name] = lines end
    end
    -- HAProxy can't send this one in a question, and haproxy.cfg lets no other through.
    local upgrade = asked["upgrade"]
    if upgrade and #upgrade == 1 and upgrade[1]:lower() == "websocket" then
        asked["upgrade"] = nil
    end
    asked["x-original-method"] = { txn.f:method() }
    -- From HTTP/2 on HAProxy makes a URL of scheme, authority and path, and forwards the path.
    local target = txn.f:url()
    if (txn.f:fc_http_major() or 1) > 1 then target = txn.f:pathq() end
    asked["x-original-uri"] = { target }
    asked["x-original-host"] = host
    -- Without this field, Portcullis knows that it does not see the content.
    local content = whole_content(txn)
    if content then asked["x-original-content-length"] = { tostring(#content) } end
    if content and #content > 0 then asked["content-length"] = { tostring(#content) } end
    local count = 0
    for _, lines in pairs(asked) do count = count + #lines end
    if count > lines_max then return refuse(txn, 431) end

    -- One connection for each question: it is not used again, so none is asked twice.
    local question = { url = decisions, headers = asked, timeout = milliseconds }
    local answer
    if content and #content > 0 then
        question.body = content
        answer = core.httpclient():post(question)
    else
        answer = core.httpclient():get(question)
    end
    if not answer or answer.status ~= 200 then
        local status = answer and answer.status or 0
        if status < 400 then return refuse(txn, 503) end
        return refuse(txn, status, answer.headers, answer.body)
    end

    -- The client's own go, in every spelling that CGI and WSGI can't tell from ours.
    for name in pairs(txn.http:req_get_headers()) do
        if name:lower():match("^app[^a-z0-9]attest") then txn.http:req_del_header(name) end
    end
    for name, values in pairs(answer.headers) do
        if name:match("^app%-attest%-") then
            for _, value in pairs(values) do
                if notes[name] then
                    txn:set_var(notes[name], value)
                else
                    txn.http:req_add_header(name, value)
                end
            end
        end
    end
    -- HAProxy leaves out a field that its buffer has no room for, and does not say so. Without one
    -- of them, the application would get another verdict.
    local written = {}
    for name in pairs(txn.http:req_get_headers()) do written[name:lower()] = true end
    for name in pairs(answer.headers) do
        local is_verdict = name:match("^app%-attest%-") and not notes[name]
        if is_verdict and not written[name] then return refuse(txn, 503) end
    end
    -- Some applications read no chunks, and would run without the content that was verified. With a
    -- length, HAProxy drops trailers, too, which no rule verifies.
    if content and (#content > 0 or txn.f:internal_htx_blk_type("tail") == "HTX_BLK_EOT") then
        txn.http:req_del_header("transfer-encoding")
        txn.http:req_set_header("content-length", tostring(#content))
    end
    txn:set_var("txn.portcullis", "admitted")
end)
