-- add_token
insert into tokens (name, digest, scope, sources, created_at, expires_at)
values (:name, :digest, :scope, :labels, :now, :until)
returning *

-- tokens
select * from tokens order by id

-- token_by_digest
select * from tokens where digest = :digest

-- any_token
select id from tokens limit 1

-- revoke_token
update tokens set revoked_at = coalesce(revoked_at, :now) where id = :number
