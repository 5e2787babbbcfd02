%% Writes what Yaws parsed to the log, as backends.py does.
-module(echo).
-export([out/1]).
-include_lib("yaws/include/yaws_api.hrl").

%% Content in chunks comes in parts, the earlier ones as the state.
out(Arg) ->
    Earlier = case Arg#arg.state of
                  undefined -> [];
                  State -> State
              end,
    case Arg#arg.clidata of
        undefined -> echo(Arg, iolist_to_binary(Earlier));
        {partial, Part} -> {get_more, undefined, [Earlier, Part]};
        Part -> echo(Arg, iolist_to_binary([Earlier, Part]))
    end.

echo(Arg, Body) ->
    Request = Arg#arg.req,
    {abs_path, Target} = Request#http_request.path,
    Headers = yaws_api:reformat_header(Arg#arg.headers, fun(Name, Value) -> {Name, Value} end),
    Fields = [[$[, json(name(Name)), $,, json(value(Value)), $]] || {Name, Value} <- flat(Headers)],
    Line = iolist_to_binary([
        "{\"method\":", json(name(Request#http_request.method)), ",\"target\":", json(Target),
        ",\"fields\":[", lists:join(",", Fields), "],\"length\":", integer_to_list(byte_size(Body)),
        ",\"sha256\":\"", hex(crypto:hash(sha256, Body)), "\",\"how\":\"raw\"}\n"
    ]),
    ok = file:write_file(os:getenv("INTEROP_LOG"), Line, [append]),
    {content, "text/plain", Line}.

%% Yaws keeps fields that it does not know from the last to the first.
flat(Headers) -> lists:flatmap(fun({Name, {multi, Values}}) -> [{Name, Value} || Value <- Values];
                                  (Pair) -> [Pair] end, lists:reverse(Headers)).

name(Name) when is_atom(Name) -> atom_to_list(Name);
name(Name) -> Name.

value(Value) when is_integer(Value) -> integer_to_list(Value);
value(Value) -> Value.

hex(Bytes) -> [io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= Bytes].

json(Text) -> [$", [quoted(One) || One <- binary_to_list(iolist_to_binary(Text))], $"].

quoted(One) when One < 16#20; One > 16#7e; One =:= $"; One =:= $\\ -> io_lib:format("\\u~4.16.0b", [One]);
quoted(One) -> One.
