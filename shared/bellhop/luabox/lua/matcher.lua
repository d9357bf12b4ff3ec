-- Lua patterns matched in Lua, slower than C but under the meter: C backtracks without ever
-- looking up, so a pattern that may take long is matched here instead.
-- Each item of a pattern becomes a function that tries it at a position and then calls the
-- function of the rest; it returns where the match ends, or nil.

local box = ...

local error, sub, byte, char = error, string.sub, string.byte, string.char
local find, setmetatable = string.find, setmetatable
local MAX_CAPTURES = 32

local function class_end(pattern, at)
  local c = sub(pattern, at, at)
  if c == "%" then
    if at == #pattern then
      error("malformed pattern (ends with '%')", 0)
    end
    return at + 1
  end
  if c ~= "[" then
    return at
  end
  at = at + 1
  if sub(pattern, at, at) == "^" then
    at = at + 1
  end
  repeat
    if at > #pattern then
      error("malformed pattern (missing ']')", 0)
    end
    at = at + (sub(pattern, at, at) == "%" and 2 or 1)
  until sub(pattern, at, at) == "]"
  return at
end

-- C decides what a class contains, one character at a time, so both matchers agree.
local function set_of(state, item)
  if state.sets[item] then
    return state.sets[item]
  end
  local set = {}
  state.sets[item] = set
  if #item == 1 and item ~= "." then
    set[byte(item)] = true
    return set
  end
  for code = 0, 255 do
    set[code] = find(char(code), item) and true or nil
  end
  return set
end

local read = {}

read["("] = function(state, pattern, at)
  local level = #state.open + 1
  if level > MAX_CAPTURES then
    error("too many captures", 0)
  end
  if sub(pattern, at + 1, at + 1) == ")" then
    state.open[level] = "position"
    return { kind = "position", level = level }, at + 2
  end
  state.open[level] = "open"
  return { kind = "open", level = level }, at + 1
end

read[")"] = function(state, _, at)
  for level = #state.open, 1, -1 do
    if state.open[level] == "open" then
      state.open[level] = "closed"
      return { kind = "close", level = level }, at + 1
    end
  end
  error("invalid pattern capture", 0)
end

local function read_escape(state, pattern, at)
  local c = sub(pattern, at + 1, at + 1)
  if c == "b" then
    if at + 3 > #pattern then
      error("unbalanced pattern", 0)
    end
    return { kind = "balance", from = byte(pattern, at + 2), to = byte(pattern, at + 3) }, at + 4
  elseif c == "f" then
    if sub(pattern, at + 2, at + 2) ~= "[" then
      error("missing '[' after '%f' in pattern", 0)
    end
    local last = class_end(pattern, at + 2)
    return { kind = "frontier", set = set_of(state, sub(pattern, at + 2, last)) }, last + 1
  elseif find(c, "%d") then
    local level = byte(c) - 48
    if state.open[level] ~= "closed" and state.open[level] ~= "position" then
      error("invalid capture index", 0)
    end
    return { kind = state.open[level] == "closed" and "again" or "never", level = level }, at + 2
  end
end

local function read_single(state, pattern, at)
  local last = class_end(pattern, at)
  local after = sub(pattern, last + 1, last + 1)
  local kind = find(after, "[%*%+%-%?]") and after or "one"
  return { kind = kind, set = set_of(state, sub(pattern, at, last)) }, last + (kind == "one" and 1 or 2)
end

local function parse(pattern, at)
  local items, state = {}, { open = {}, sets = {} }
  while at <= #pattern do
    local c = sub(pattern, at, at)
    local item, next_at
    if c == "$" and at == #pattern then
      item, next_at = { kind = "ending" }, at + 1
    elseif read[c] then
      item, next_at = read[c](state, pattern, at)
    elseif c == "%" then
      item, next_at = read_escape(state, pattern, at)
    end
    if not item then
      item, next_at = read_single(state, pattern, at)
    end
    items[#items + 1], at = item, next_at
  end
  for level = 1, #state.open do
    if state.open[level] == "open" then
      error("unfinished capture", 0)
    end
  end
  return items, state.open
end

local build = {}

build["one"] = function(m, item, rest)
  local set = item.set
  return function(at)
    if set[byte(m.subject, at)] then
      return rest(at + 1)
    end
  end
end

local function greedy(m, set, least, rest)
  return function(at)
    local subject, stop = m.subject, at
    while set[byte(subject, stop)] do
      stop = stop + 1
    end
    for try = stop, at + least, -1 do
      local last = rest(try)
      if last then
        return last
      end
    end
  end
end

build["*"] = function(m, item, rest)
  return greedy(m, item.set, 0, rest)
end

build["+"] = function(m, item, rest)
  return greedy(m, item.set, 1, rest)
end

build["-"] = function(m, item, rest)
  local set = item.set
  return function(at)
    while true do
      local last = rest(at)
      if last then
        return last
      end
      if not set[byte(m.subject, at)] then
        return nil
      end
      at = at + 1
    end
  end
end

build["?"] = function(m, item, rest)
  local set = item.set
  return function(at)
    if set[byte(m.subject, at)] then
      local last = rest(at + 1)
      if last then
        return last
      end
    end
    return rest(at)
  end
end

build["ending"] = function(m, _, rest)
  return function(at)
    if at == #m.subject + 1 then
      return rest(at)
    end
  end
end

build["position"] = function(m, item, rest)
  return function(at)
    m.first[item.level], m.last[item.level] = at, nil
    return rest(at)
  end
end

build["open"] = function(m, item, rest)
  return function(at)
    local before = m.first[item.level]
    m.first[item.level] = at
    local last = rest(at)
    if not last then
      m.first[item.level] = before
    end
    return last
  end
end

build["close"] = function(m, item, rest)
  return function(at)
    local before = m.last[item.level]
    m.last[item.level] = at - 1
    local last = rest(at)
    if not last then
      m.last[item.level] = before
    end
    return last
  end
end

build["balance"] = function(m, item, rest)
  return function(at)
    if byte(m.subject, at) ~= item.from then
      return nil
    end
    local depth = 1
    for try = at + 1, #m.subject do
      local c = byte(m.subject, try)
      if c == item.to then
        depth = depth - 1
        if depth == 0 then
          return rest(try + 1)
        end
      elseif c == item.from then
        depth = depth + 1
      end
    end
  end
end

build["frontier"] = function(m, item, rest)
  local set = item.set
  return function(at)
    local before = at > 1 and byte(m.subject, at - 1) or 0
    if not set[before] and set[byte(m.subject, at) or 0] then
      return rest(at)
    end
  end
end

build["again"] = function(m, item, rest)
  return function(at)
    local text = sub(m.subject, m.first[item.level], m.last[item.level])
    if sub(m.subject, at, at + #text - 1) == text then
      return rest(at + #text)
    end
  end
end

-- A capture of a position is no text, so repeating it never matches, in C neither.
build["never"] = function()
  return function() end
end

local Match = {}
Match.__index = Match

-- Tries at one position; returns where the match ends, one past its last character.
function Match:at(subject, at)
  self.subject = subject
  return self.run(at)
end

-- Returns where the first match at or after a position begins and ends.
function Match:search(subject, at)
  while at <= #subject + 1 do
    local stop = self:at(subject, at)
    if stop then
      return at, stop
    end
    if self.anchored then
      return nil
    end
    at = at + 1
  end
end

-- Returns capture number level of the match from start to stop (one past its end).
function Match:capture(level, start, stop)
  if level == 0 or (level == 1 and #self.open == 0) then
    return sub(self.subject, start, stop - 1)
  end
  if self.open[level] == "position" then
    return self.first[level]
  end
  if not self.open[level] then
    error("invalid capture index", 0)
  end
  return sub(self.subject, self.first[level], self.last[level])
end

function Match:captures(start, stop, whole)
  local found = {}
  for level = 1, (#self.open == 0 and whole) and 1 or #self.open do
    found[level] = self:capture(level, start, stop)
  end
  return found
end

-- Makes a matcher of a pattern; in gmatch a leading ^ is an ordinary character.
function box.pattern(pattern, literal_caret)
  local anchored = not literal_caret and sub(pattern, 1, 1) == "^"
  local items, open = parse(pattern, anchored and 2 or 1)
  local m = setmetatable({ first = {}, last = {}, open = open, anchored = anchored }, Match)
  local run = function(at)
    return at
  end
  for index = #items, 1, -1 do
    run = build[items[index].kind](m, items[index], run)
  end
  m.run = run
  return m
end
