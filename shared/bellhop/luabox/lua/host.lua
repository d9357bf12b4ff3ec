-- What the host calls: compile a script, take in its values, run it in a fresh environment.

local box = ...

local error, type, next, tostring = error, type, next, tostring
local setfenv, loadstring, unpack, ipairs = setfenv, loadstring, unpack, ipairs
local meter, library = box.meter, box.library
local concat, sort, sub = table.concat, table.sort, string.sub
local globals = _G
local text_metatable = getmetatable("")
local LONGEST_MESSAGE = 2000

-- Marks in the stream of values; no UTF-8 string begins with this byte.
local MAP, LIST, END, SAME = box.map, box.list, box.stop, box.same

local scripts = {}

function box.compile(id, source)
  local chunk, why = loadstring(source, "=script")
  scripts[id] = chunk
  return why and box.encode(why)
end

function box.forget()
  scripts = {}
end

local stream, length = {}, 0

function box.feed(...)
  local more = { ... }
  if length == 0 then
    stream, length = more, #more
    return
  end
  for index = 1, #more do
    stream[length + index] = more[index]
  end
  length = length + #more
end

local at
local read_list

local function read_map()
  local map, key = {}, stream[at]
  while key ~= END do
    at = at + 1
    if key == MAP then
      local name = stream[at]
      at = at + 1
      map[name] = read_map()
    elseif key == LIST then
      local name = stream[at]
      at = at + 1
      map[name] = read_list()
    else
      map[key] = stream[at]
      at = at + 1
    end
    key = stream[at]
  end
  at = at + 1
  return map
end

function read_list()
  local list, count, value = {}, 0, stream[at]
  box.marks[list] = true
  while value ~= END do
    at, count = at + 1, count + 1
    if value == MAP then
      list[count] = read_map()
    elseif value == LIST then
      list[count] = read_list()
    elseif value == SAME then
      list[count] = box.given[stream[at]]
      at = at + 1
    else
      list[count] = value
    end
    value = stream[at]
  end
  at = at + 1
  return list
end

function box.drop()
  stream, length = {}, 0
end

function box.take()
  box.marks, at = {}, 1
  box.given = read_map()
  box.args = read_list()
  stream, length = {}, 0
end

-- A function that makes a fresh copy of a library, with room for all of it at once.
local function copier(source)
  local names, parts = {}, {}
  for name in next, source do
    names[#names + 1] = name
  end
  sort(names)
  for index, name in ipairs(names) do
    parts[index] = name .. "=f." .. name
  end
  return loadstring("local f = ... return function() return {" .. concat(parts, ",") .. "} end")(source)
end

local fresh, modules = {}, {}
for name, source in next, library do
  fresh[name] = copier(source)
end
for name, source in next, box.modules do
  modules[name] = copier(source)
end

local function requirer()
  local loaded = {}
  return function(name)
    if not loaded[name] then
      if not modules[name] then
        error("module '" .. tostring(name) .. "' not found: there are json, strings and runes", 2)
      end
      loaded[name] = modules[name]()
    end
    return loaded[name]
  end
end

local function environment()
  local env = fresh.base()
  env._G = env
  env.string, env.table, env.math = fresh.string(), fresh.table(), fresh.math()
  env.coroutine = fresh.coroutine()
  env.require = requirer()
  text_metatable.__index = env.string
  return env
end

local function described(message)
  if type(message) == "string" then
    return sub(message, 1, LONGEST_MESSAGE)
  elseif type(message) == "table" and type(message.unfit) == "string" then
    return message.unfit
  end
  return "(error object is a " .. type(message) .. " value)"
end

-- Returns a status, a text or the result as JSON, a line, and whether threads were made.
function box.run(id, name, steps, seconds)
  local unfit, missing
  local function work()
    local env = environment()
    local chunk = setfenv(scripts[id], env)
    chunk()
    for key, value in next, box.given do
      env[key] = value
    end
    if type(env[name]) ~= "function" then
      missing = true
      return
    end
    local result = env[name](unpack(box.args))
    unfit = true
    return box.encode(result)
  end
  local sprouted, ok, result, message, line = meter.guarded(steps, seconds, work)
  box.given, box.args, box.marks = nil, nil, {}
  if missing then
    return "missing", "", nil, sprouted
  elseif ok then
    return "ok", result, nil, sprouted
  elseif result == "limit" then
    return "limit", message, line, sprouted
  end
  return unfit and "unfit" or "error", box.encode(described(message)), line, sprouted
end

text_metatable.__metatable = false
for name in next, globals do
  globals[name] = nil
end
