-- Leases tokens of one bucket to one process, which then serves requests locally.
--
-- Invariant: tokens here + tokens leased and still usable <= tokens of the true bucket, so all processes together
-- never grant more than the budget. While leases are out, the bucket refills to (burst - leased) only.
--
-- KEYS[1]  the bucket, a hash: t tokens, s seconds of t, o tokens out on lease, u seconds when the last lease ends,
--          g generation of leases (a new one begins when all leases have ended)
-- ARGV     burst, rate a second, tokens wanted, tokens of the caller's last lease, generation of that lease,
--          seconds a lease lasts
-- Returns  tokens granted, tokens left here (text), generation
local burst, rate, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local done, generation, lasts = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1e6
local b = redis.call('HMGET', KEYS[1], 't', 's', 'o', 'u', 'g')
local t, s = tonumber(b[1] or burst), tonumber(b[2] or now)
local o, u, g = tonumber(b[3] or 0), tonumber(b[4] or 0), tonumber(b[5] or 0)

-- Times ahead of now are from another clock (a failover to a machine whose clock is behind): no tokens are added until then.
if s > now + 1 then
  s = now
end
u = math.min(u, now + lasts)
if s < u and now > s then
  local till = math.min(now, u)
  t = math.min(math.max(t, burst - o), t + (till - s) * rate)
  s = till
end
if now > s then
  t = t + (now - s) * rate
  s = now
end
t = math.min(t, burst)
if now >= u then
  o, g = 0, g + 1
end
if generation == g then
  o = math.max(0, o - done)
end

local granted = 0
if t >= 1 then
  granted = math.max(1, math.min(want, math.floor(t / 8)))
  t = t - granted
  if granted > 1 then
    o = math.min(math.floor(burst / 2), o + granted)
    u = now + lasts
  end
end
redis.call('HSET', KEYS[1], 't', tostring(t), 's', string.format('%.6f', s), 'o', o, 'u', string.format('%.6f', u), 'g', g)
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate + lasts) + 1)
return { granted, tostring(t), g }
