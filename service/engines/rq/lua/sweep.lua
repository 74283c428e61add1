#!lua flags=allow-oom
-- ARGV: how often a worker may go over one job. Takes back what hosts hold that have not been heard of, and finds jobs
-- that RQ's own tools have put into its queues. Returns the ids of what came back, and of what was set aside instead.
--@prelude
local now, back, aside = now_s(), {}, {}
for _, class in ipairs(CLASSES) do
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', started_key(class), '-inf', stamp(now))) do
    redis.call('ZREM', started_key(class), member)
    local id = string.match(member, '^([^:]+):')
    if field(id, 'status') == 'started' then
      local cause = 'its host ' .. field(id, 'worker_name') .. ' was not heard of any more'
      local list = come_back(class, id, cause, tonumber(ARGV[1]), now) and aside or back
      list[#list + 1] = id
    end
  end
  for _, id in ipairs(redis.call('LRANGE', queue_key(class), 0, 255)) do
    -- Empty where clients have no names; missing where the job is none of ours, or gone.
    local client = redis.call('HGET', job_key(id), 'rk_client')
    if not client then
      redis.call('LREM', queue_key(class), 1, id)
      count_out(id)
    elseif not redis.call('LPOS', turns_key(class, client), id) then
      redis.call('LREM', queue_key(class), 1, id)
      redis.call('HSET', job_key(id), 'rk_attempts', '0', 'rk_causes', '')
      queue_up(class, id, client, now, false)
    end
  end
end
for _, host in ipairs(redis.call('ZRANGEBYSCORE', HOSTS, '-inf', stamp(now))) do
  redis.call('ZREM', HOSTS, host)
  redis.call('HDEL', SLOTS, host)
end
redis.call('ZREMRANGEBYSCORE', APIS, '-inf', stamp(now))
return {back, aside}
