#!lua
-- ARGV: key, entry, seconds to keep it, bytes that all may take. The first entry of a key stands, whoever brings it.
-- Those that were kept first make room. Not allowed where memory has run out: grades need it more.
local INDEX, TAKEN = 'rkgrade:verdicts', 'rkgrade:verdicts:bytes'
local key, entry, keep_s, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local function name_of(k) return 'rkgrade:verdict:' .. k end

local function drop(member)
  local k, size = string.match(member, '^(.*):(%d+)$')
  redis.call('UNLINK', name_of(k))
  redis.call('DECRBY', TAKEN, size)
end

if redis.call('EXISTS', name_of(key)) == 1 then return 0 end
local now = tonumber(redis.call('TIME')[1])
local lapsed = redis.call('ZRANGEBYSCORE', INDEX, '-inf', now - keep_s, 'LIMIT', 0, 100)
for _, member in ipairs(lapsed) do
  redis.call('ZREM', INDEX, member)
  drop(member)
end
-- Its name stands twice, with a score beside it and what Redis itself keeps of each.
local size = #entry + 2 * #key + 256
redis.call('SET', name_of(key), entry, 'EX', keep_s)
if redis.call('ZADD', INDEX, now, key .. ':' .. size) == 1 then redis.call('INCRBY', TAKEN, size) end
while tonumber(redis.call('GET', TAKEN)) > most do
  local first = redis.call('ZPOPMIN', INDEX)[1]
  if not first then
    redis.call('SET', TAKEN, 0)
    break
  end
  drop(first)
end
return 1
