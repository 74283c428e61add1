#!lua flags=allow-oom
-- ARGV: an API, an answer for it, seconds after which nobody will fetch it. Allowed where memory has run out: an answer
-- leaves it at once.
--@prelude
local answers = 'rkgrade:session-answers:' .. ARGV[1]
redis.call('RPUSH', answers, ARGV[2])
redis.call('EXPIRE', answers, ARGV[3])
return 1
