-- replace_rules
update sources set rules = :rules, policy = :policy, updated_at = :now where id = :source returning *

-- change_source
update sources set name = :name, version = :version, url = :url, operator_url = :operator_url,
    mark = case when url = :url then mark else null end, updated_at = :now
where id = :source returning *

-- give_up_runs_of_old_url
update runs set state = 'failed', finished_at = :now, error = 'given up: the URL of the source was changed'
where source_id = :source and mode <> 'sync' and state in ('queued', 'running', 'cancelled')

-- open_row
select id, run_id, locked_by from page_crawls where page_id = :page and outcome is null {for update}

-- postpone
update page_crawls set scheduled_for = :at, updated_at = :now where id = :crawl

-- link_row
select id, source_id, url, score, comment from links where id = :link {for update}

-- remove_link
delete from page_links where link_id = :link

-- forget_replies
delete from answers where created_at < :before

-- begin_reply
insert into answers (caller, name, asked, created_at) values (:caller, :name, :asked, :now)
on conflict (caller, name) do nothing
returning name

-- kept_reply
select asked, status_code, location, body from answers where caller = :caller and name = :name

-- begin_reply_again
update answers set created_at = :now
where caller = :caller and name = :name and asked = :asked and status_code is null and created_at < :since
returning name

-- renew_reply
update answers set created_at = :now
where caller = :caller and name = :name and status_code is null
    and (created_at = :began or created_at = :now)
returning name

-- keep_reply
update answers set status_code = :status_code, location = :location, body = :body
where caller = :caller and name = :name and created_at = :began

-- forget_reply
delete from answers where caller = :caller and name = :name and created_at = :began
