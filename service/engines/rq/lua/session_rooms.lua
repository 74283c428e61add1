#!lua flags=no-writes
-- What room for sessions each live host has told of, by its name; empty where it keeps none.
--@prelude
local rooms = {}
for _, host in ipairs(redis.call('ZRANGEBYSCORE', HOSTS, stamp(now_s()), '+inf')) do
  rooms[#rooms + 1] = host
  rooms[#rooms + 1] = redis.call('HGET', 'rkgrade:session-rooms', host) or ''
end
return rooms
