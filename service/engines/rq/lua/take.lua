#!lua flags=allow-oom
-- ARGV: host, MiB of memory free there, whether anything runs there, seconds of a lease, ids for executions: as many
-- jobs are wanted. Returns {class, id, execution, seconds waited, hash} for each that is taken.
--@prelude
local host, free_mb, busy, lease_s = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
local now = now_s()
local taken, executions = {}, 5

-- How long a job that finds too little memory is passed over, before everything waits for it.
local PATIENCE_S = 10

local function take(class, client, id)
  local execution = ARGV[executions]
  executions = executions + 1
  local job = job_key(id)
  local mean = mean_s()
  redis.call('HSET', PACE, 'level_' .. class, redis.call('ZSCORE', clients_key(class), client))
  redis.call('ZINCRBY', clients_key(class), mean, client)
  out_of_line(class, id, client)
  redis.call('LPOP', WAKE)
  redis.call('HINCRBY', job, 'rk_attempts', 1)
  redis.call('HSET', job, 'status', 'started', 'started_at', DATE, 'worker_name', host, 'rk_charged', mean)
  redis.call('HSET', job, 'rk_executions', field(id, 'rk_executions') .. execution .. ' ')
  redis.call('ZADD', started_key(class), stamp(now + lease_s), id .. ':' .. execution)
  local waited_s = now - (tonumber(field(id, 'rk_queued')) or now)
  taken[#taken + 1] = {class, id, execution, stamp(waited_s), redis.call('HGETALL', job)}
end

-- The next job of a client that still has anyone to wait for it; nil where there is none.
local function next_of(class, client)
  while true do
    local id = redis.call('LINDEX', turns_key(class, client), 0)
    if not id then
      redis.call('ZREM', clients_key(class), client)
      return nil
    end
    if field(id, 'status') ~= 'queued' then
      out_of_line(class, id, client)
    else
      local why = unwanted(id, now)
      if not why then return id end
      out_of_line(class, id, client)
      end_without_result(id, 'canceled', why, now)
    end
  end
end

local function serve(class)
  local found = true
  while found do
    found = false
    for _, client in ipairs(redis.call('ZRANGE', clients_key(class), 0, 63)) do
      local id = next_of(class, client)
      if id then
        local needs_mb = tonumber(field(id, 'rk_memory_mb')) or 0
        if needs_mb <= free_mb or not busy then
          take(class, client, id)
          free_mb, busy, found = free_mb - needs_mb, true, true
          if executions > #ARGV then return true end
          break
        end
        if now - (tonumber(field(id, 'rk_queued')) or now) > PATIENCE_S then return true end
      end
    end
  end
  return false
end

for _, class in ipairs(CLASSES) do
  if serve(class) then break end
end
return taken
