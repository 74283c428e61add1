-- What every script starts with. All keys lie on one Redis server: names are made here, not passed in, so Redis
-- Cluster is out. Queues, job hashes and the registries of started and failed jobs are RQ's, by RQ's names; what is
-- named rkgrade is ours alone. Clocks differ from host to host: times are Redis's own, but for the first argument of
-- each script, which is the caller's time of day as RQ writes dates, for people to read.

local RQ = '@RQ@'
local CLASSES = {'grade', 'batch', 'async'}
local DONE = {finished = true, failed = true, canceled = true}
local WAKE, STREAM, HOSTS, SLOTS = 'rkgrade:wake', 'rkgrade:ended', 'rkgrade:hosts', 'rkgrade:slots'
local APIS = 'rkgrade:apis'
local PACE = 'rkgrade:pace'
local DATE = table.remove(ARGV, 1)

local function job_key(id) return RQ .. ':job:' .. id end
local function queue_key(class) return RQ .. ':queue:rkgrade-' .. class end
local function started_key(class) return RQ .. ':wip:rkgrade-' .. class end
local function failed_key(class) return RQ .. ':failed:rkgrade-' .. class end
-- Of each class: its clients with work in the queue, by how much they have had; and each one's own jobs in order.
local function clients_key(class) return 'rkgrade:clients:' .. class end
local function turns_key(class, client) return 'rkgrade:turns:' .. class .. ':' .. client end

local function now_s()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1e6
end

local function stamp(s) return string.format('%.6f', s) end

local function field(id, name) return redis.call('HGET', job_key(id), name) or '' end

-- Each lease of a job is an execution, whose id no other has. A job that is put anew under its id has had none.
local function is_execution(id, execution) return string.find(field(id, 'rk_executions'), execution, 1, true) ~= nil end

local function last_execution(id) return string.match(field(id, 'rk_executions'), '(%S+) $') or '' end

-- Seconds that a job has kept its worker, on average of late.
local function mean_s() return tonumber(redis.call('HGET', PACE, 'mean_s') or '1') end

-- An API that has not been heard of for so long has told its clients that Redis cannot be reached, if it lives.
local API_LEASE_S = 150

local function heard_of(api, now) redis.call('ZADD', APIS, stamp(now + API_LEASE_S), api) end

-- Why nobody waits any more for a job that has not ended, or nil: too late, or the one API whose clients wait for it
-- has gone.
local function unwanted(id, now)
  local deadline = tonumber(field(id, 'rk_deadline'))
  if deadline and deadline <= now then return 'deadline' end
  local api = field(id, 'rk_api')
  if api ~= '' and (tonumber(redis.call('ZSCORE', APIS, api) or '0')) <= now then return 'abandoned' end
  return nil
end

local function workers_alive(now)
  local count = 0
  for _, host in ipairs(redis.call('ZRANGEBYSCORE', HOSTS, stamp(now), '+inf')) do
    count = count + tonumber(redis.call('HGET', SLOTS, host) or '0')
  end
  return count
end

local function running()
  local count = 0
  for _, class in ipairs(CLASSES) do count = count + redis.call('ZCARD', started_key(class)) end
  return count
end

-- Jobs in line whose callers hold no place of their own, and how many of them wait: idle workers are about to take some.
local function limited() return redis.call('LLEN', queue_key('grade')) + redis.call('LLEN', queue_key('async')) end

local function unadmitted(now) return math.max(0, limited() - math.max(0, workers_alive(now) - running())) end

-- What the requests of all that is in line take, and each of them.
local LINE_BYTES, LINE_SIZES = 'rkgrade:line-bytes', 'rkgrade:line-sizes'

local function line_bytes() return tonumber(redis.call('GET', LINE_BYTES) or '0') end

local function count_in(id)
  local size = redis.call('HSTRLEN', job_key(id), 'data')
  if redis.call('HSETNX', LINE_SIZES, id, size) == 1 then redis.call('INCRBY', LINE_BYTES, size) end
end

local function count_out(id)
  local size = redis.call('HGET', LINE_SIZES, id)
  if size then
    redis.call('HDEL', LINE_SIZES, id)
    redis.call('DECRBY', LINE_BYTES, size)
  end
end

-- Put a job in line: `front` for one that comes back through no fault of its client's.
local function queue_up(class, id, client, now, front)
  redis.call('HSET', job_key(id), 'status', 'queued', 'enqueued_at', DATE, 'rk_queued', stamp(now))
  redis.call('SADD', RQ .. ':queues', queue_key(class))
  local push = front and 'LPUSH' or 'RPUSH'
  redis.call(push, queue_key(class), id)
  redis.call(push, turns_key(class, client), id)
  count_in(id)
  -- Who comes anew starts level with whoever was served last: nobody saves up turns by staying away.
  redis.call('ZADD', clients_key(class), 'NX', redis.call('HGET', PACE, 'level_' .. class) or '0', client)
  if redis.call('LLEN', WAKE) < 10000 then redis.call('RPUSH', WAKE, '1') end
end

local function out_of_line(class, id, client)
  count_out(id)
  redis.call('LREM', queue_key(class), 1, id)
  redis.call('LREM', turns_key(class, client), 1, id)
  if redis.call('LLEN', turns_key(class, client)) == 0 then redis.call('ZREM', clients_key(class), client) end
end

local function announce(id) redis.call('XADD', STREAM, 'MAXLEN', '~', '20000', '*', 'id', id) end

-- Jobs that have ended and may be asked for again: when each goes by itself, how large it is, and how large they are
-- together.
local KEPT, KEPT_SIZES, KEPT_BYTES = 'rkgrade:kept', 'rkgrade:kept-sizes', 'rkgrade:kept-bytes'

-- What Redis holds of one beside its answer, as measured and some more.
local EACH_BYTES = 2560

local function count_kept(id, answer_bytes, until_s)
  local size = answer_bytes + EACH_BYTES
  redis.call('ZADD', KEPT, stamp(until_s), id)
  redis.call('HSET', KEPT_SIZES, id, size)
  redis.call('INCRBY', KEPT_BYTES, size)
end

local function forget(id)
  redis.call('UNLINK', job_key(id), 'rkgrade:answer:' .. id)
  local size = redis.call('HGET', KEPT_SIZES, id)
  if size then
    redis.call('ZREM', KEPT, id)
    redis.call('HDEL', KEPT_SIZES, id)
    redis.call('DECRBY', KEPT_BYTES, size)
  end
end

-- Forget those whose time has come, and the oldest where there is too much of them, but for `id`.
local function forget_old(id, most_bytes, now)
  for _, over in ipairs(redis.call('ZRANGEBYSCORE', KEPT, '-inf', stamp(now), 'LIMIT', 0, 100)) do forget(over) end
  while tonumber(redis.call('GET', KEPT_BYTES) or '0') > most_bytes do
    local oldest = redis.call('ZRANGE', KEPT, 0, 0)[1]
    if not oldest or oldest == id then return end
    forget(oldest)
  end
end

-- The end of a job that leaves no result: why it does stands in its hash. Its request goes, which nothing counts any
-- more, but for one that was set aside, which may be run again.
local function end_without_result(id, status, why, now)
  redis.call('HSET', job_key(id), 'status', status, 'exc_info', why, 'ended_at', DATE)
  local asked_for_s = tonumber(field(id, 'rk_keep_s')) or 0
  local keep_s = math.max(60, asked_for_s)
  redis.call('EXPIRE', job_key(id), keep_s)
  if status ~= 'failed' then
    redis.call('HDEL', job_key(id), 'data')
    if asked_for_s > 0 then count_kept(id, 0, now + keep_s) end
  end
  announce(id)
end

-- A job whose worker or host went: in line again, at the front, or set aside where that has happened too often.
local function come_back(class, id, cause, most, now)
  local causes = field(id, 'rk_causes')
  causes = causes == '' and cause or causes .. '; ' .. cause
  redis.call('HSET', job_key(id), 'rk_causes', causes)
  if (tonumber(field(id, 'rk_attempts')) or 0) < most then
    queue_up(class, id, field(id, 'rk_client'), now, true)
    return false
  end
  end_without_result(id, 'failed', causes, now)
  local keep_s = 30 * 86400
  redis.call('EXPIRE', job_key(id), keep_s)
  redis.call('ZADD', failed_key(class), stamp(now + keep_s), id)
  return true
end
