#!lua flags=allow-oom
-- ARGV: host, its workers, what it offers, seconds of a lease, then class, id and execution of each job in its hands.
-- Returns the executions that are to be given up: cancelled, wanted by nobody any more, or somebody else's by now.
--@prelude
local host, lease_s, now = ARGV[1], tonumber(ARGV[4]), now_s()
redis.call('ZADD', HOSTS, stamp(now + lease_s), host)
redis.call('HSET', SLOTS, host, ARGV[2])
redis.call('SET', 'rkgrade:host:' .. host, ARGV[3], 'EX', 86400)
local lost = {}
for i = 5, #ARGV, 3 do
  local class, id, execution = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local member = id .. ':' .. execution
  local why = unwanted(id, now)
  if why and redis.call('ZREM', started_key(class), member) == 1 then
    end_without_result(id, 'canceled', why, now)
  end
  if redis.call('ZSCORE', started_key(class), member) then
    redis.call('ZADD', started_key(class), 'XX', stamp(now + lease_s), member)
  else
    lost[#lost + 1] = execution
  end
end
return lost
