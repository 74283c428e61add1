#!lua flags=no-writes
-- ARGV: id of a session. Returns what is written of it, empty where that is nothing, and whether its host lives.
--@prelude
local entry = redis.call('GET', 'rkgrade:session:' .. ARGV[1])
if not entry then return {'', 0} end
local lease = tonumber(redis.call('ZSCORE', HOSTS, cjson.decode(entry).host) or '0')
return {entry, lease > now_s() and 1 or 0}
